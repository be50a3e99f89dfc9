sub('''  if (pivots_here)
    ROLL for (int f = tid; f < 1024; f += NT)
      st_async''','''  if (pivots_here && w >= 3) // (warps 0, 1, 2 have most of the Gram)
    ROLL for (int f = tid - 96; f < 1024; f += NT - 96)
      st_async''')
sub('''  if (above) // the rows above leave, while the sums travel
    ROLL for (int i = tid; i < 64 * 16; i += NT) {''','''  if (above && w >= 3) // the rows above leave, while the sums travel
    ROLL for (int i = tid - 96; i < 64 * 16; i += NT - 96) {''')
