def nov(b):
    b.rep('''        store_pair<EXACT>(job, first * TILE + row, col, out[i].x, out[i + 1].x);
        store_pair<EXACT>(job, first * TILE + row + 1, col, out[i].y, out[i + 1].y);
''','''        if (out[i].x == 1.2345f) store_pair<EXACT>(job, first * TILE + row, col, out[i].x, out[i + 1].x);
        if (out[i].y == 1.2345f) store_pair<EXACT>(job, first * TILE + row + 1, col, out[i].y, out[i + 1].y);
''')
def nor(b):
    b.rep('''            store_once2(out + 2 * i * TILE * ROWS, x);
            store_once2(out + (2 * i * TILE + 1) * ROWS, y);
''','''            if (x.x == 1.2345f) store_once2(out + 2 * i * TILE * ROWS, x);
            if (y.x == 1.2345f) store_once2(out + (2 * i * TILE + 1) * ROWS, y);
''')
