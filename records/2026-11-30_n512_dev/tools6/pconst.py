# patch "const": n and the number of panels are constants of the 512 instance
def const(b):
    b.rep('''  Lane me;
  me.tid = threadIdx.x;
''','''  if (EXACT) {
    n = ROWS;
    panels = ROWS / NB;
  }
  Lane me;
  me.tid = threadIdx.x;
''')
if __name__=='__main__':
    import sys
    from lib import B
    import tr
    b=B(sys.argv[1]); const(b); tr.dev(b); b.save(sys.argv[2])
