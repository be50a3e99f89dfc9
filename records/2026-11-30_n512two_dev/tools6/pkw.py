# patch "kw": what rounding C and W' costs grows with the number of reflectors applied so far; the test knows
def kw(b):
    b.rep('''        const float order = (float)job.n, error = V_ROUNDING * bits_float(s.largest_column);
        const float allowed = TWO_TERM_AT * 1.1920929e-7f * order * reciprocal_sqrt(order) * bits_float(s.largest_sum);
''','''        // Each reflector adds the square of what rounding leaves in its direction: sqrt(reflectors) in all.
        const float reflectors = (float)(NB * k + (inside ? IB : 0));
        const float error = V_ROUNDING * bits_float(s.largest_column) * (reflectors * reciprocal_sqrt(reflectors));
        const float allowed = TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum);
''')
if __name__=='__main__':
    import sys
    from lib import B
    import tr
    b=B(sys.argv[1]); kw(b); tr.dev(b); b.save(sys.argv[2])
