# no meeting of the cluster between panels: the inbox lies where nothing of the panel before is read any more
sub('''CSIZE = RP * LDC * 4 > 2 * TILE ? RP * LDC * 4 : 2 * TILE, IN = CIN + CSIZE, WALL''','''CSIZE = RP * LDC * 4 > 2 * TILE ? RP * LDC * 4 : 2 * TILE, IN = TWO ? CIN + CSIZE : V, WALL''')
sub('FIRST = TILE > 26624 ? TILE : 26624','FIRST = TILE > 28160 ? TILE : 28160')
sub('''    if (here) cluster_meet();
    else cluster_sync();
''','''    // Where V and T stay here and the inbox of the next W lies apart (one term), a CTA may run ahead into the next panel: all its sends but the first
    // come after sums that need every CTA, and the first one's inbox has not been read since the last such sum.
    if (!here) cluster_sync();
    else if (TWO) cluster_meet();
''')
sub('''    finish();
  }
}
''','''    finish();
  }
  cluster_sync(); // nobody ends while others may still write to it
}
''')
