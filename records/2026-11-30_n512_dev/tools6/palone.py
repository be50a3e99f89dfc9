# patch "alone": the last row's reflector is I (tau = 0), as in LAPACK: its pivot, however small, is nobody's business
def alone(b):
    b.rep('''DEVICE void recurrence_cholesky(Window& win, int lane) {''','''DEVICE void recurrence_cholesky(Window& win, bool square, int lane) {''')
    b.rep('''    own = make_float4(out[0], out[1], out[2], out[3]);
    *(float4*)&win.r_abs[lane][4 + o] = own;
    if (lane == 0)''','''    own = make_float4(out[0], out[1], out[2], square && o == IB - 4 ? 0.f : out[3]);
    *(float4*)&win.r_abs[lane][4 + o] = own;
    if (lane == 0)''')
    b.rep('''    recurrence_cholesky(win, lane);
    const float whole = win.diagonal[lane];
''','''    // The matrix ends with this window: its last column has no row below the diagonal, so nothing is reflected (tau = 0, as in LAPACK),
    // and its pivot does not matter. In one matrix of twenty it is small enough to be refused.
    const bool square = first * TILE + IB == job.n;
    recurrence_cholesky(win, square, lane);
    const float whole = win.diagonal[lane];
''')
    b.rep('''    const bool bad = whole != 0.f && !(win''','''    const bool bad = whole != 0.f && !(square && lane == IB - 1) && !(win''')
