"""What differs between the families' names and the prelude's, and what no route reaches. See assemble.py."""

FAMILIES = {
    "small": "v17_small_column_pairs",
    "n512": "v24_n512_restart",
    "mid": "v79_n1024_two_terms_pieces",
    "n1024": "v38_n1024_tensor_copies",
    "large": "v61_large_registers",
}

RENAMES = {
    "small": {"rcp": "reciprocal", "rsq": "reciprocal_sqrt", "send": "send_step", "store_async": "send", "expect_bytes": "barrier_expect"},
    "n512": {"pack_half2": "pack", "bits_float": "__uint_as_float", "float_bits": "__float_as_uint", "mma_fp16": "mma",
             "bar_sync": "named_join", "fence_async": "fence_async_shared", "fence_all": "fence_async",
             "prefetch_line": "prefetch_l2", "first_lane": "uniform", "barrier_wait": "barrier_wait<false>"},
    "mid": {"split_fp16": "split"},
    "n1024": {"split_fp16": "split", "mma_fp16": "mma"},
    "large": {"fast_rcp": "reciprocal", "fast_rsqrt": "reciprocal_sqrt", "smem_addr": "shared_address", "transpose8": "transpose_8x8",
              "ldsm4": "load_matrix", "ldsm4t": "load_matrix_transposed", "map_rank": "map_address", "mbar_init": "barrier_init",
              "mbar_expect": "barrier_expect", "mbar_wait": "barrier_wait", "st_async": "send"},
}

# (exact text, replacement), before anything else is done. Each says what for.
EDITS: dict[str, list[tuple[str, str]]] = {
    "small": [
        # two teams: only above n = 384, which n512 serves
        ("""  r = plan(args.n, 4);
  const bool four = r.window >= 2;  // else C of four teams leaves no room for two blocks, the least that works
  if (!four) r = plan(args.n, 2);
""", """  r = plan(args.n, 4);  // leaves room for two blocks, the least that works, up to n = 384
"""),
        ("  if (!four) return launch_teams<2, true, 1>(args, batch, r.bytes);\n", ""),
    ],
    "n512": [
        # the prelude's bulk_store commits, and its barrier_init is no fence
        ("      bulk_store_commit();\n", ""),
        ("DEVICE void bulk_store_commit() { asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\"); }\n", ""),
        ("    barrier_init(&s.full[0]);\n    barrier_init(&s.full[1]);\n",
         "    barrier_init(&s.full[0]);\n    fence_async();\n    barrier_init(&s.full[1]);\n    fence_async();\n"),
        ("constexpr bool FP32_CLASS = true;\n", "constexpr bool FP32_CLASS = FP32;\n"),
        # a development argument
        ("#ifndef TWO_TERM_AT\n#define TWO_TERM_AT 5.5f\n#endif\n", "constexpr float TWO_TERM_AT = 5.5f;\n"),
    ],
    "large": [
        # the class is the compiler's argument, as n512's is
        ("constexpr int TERMS = 2;\n", "constexpr int TERMS = FP32 ? 2 : 1;\n"),
        # strips by warpgroups always (FACTS folds the ifs)
        ("WARPGROUPS ? 1 : 2) larfb", "1) larfb"),
        ("LARFB_SMEM = WARPGROUPS ? StripSmem::BYTES : std::max(LarfbSmem<64>::BYTES, LarfbSmem<32>::BYTES);", "LARFB_SMEM = StripSmem::BYTES;"),
        ("half = WARPGROUPS ? 2 : x.near[c];", "half = 2;"), ("x.near[c] += WARPGROUPS ? 2 : 1;", "x.near[c] += 2;"),
        ("(q & 1) ? 1 : c - x.made <= urgent && !WARPGROUPS ? 0 : 2", "(q & 1) ? 1 : 2"),
        ("WARPGROUPS ? is_near || c - x.made <= urgent : half < 2", "is_near || c - x.made <= urgent"),
        ("return WARPGROUPS || n > 2048 ? 1 : 2;", "return 1;"),
        ("constexpr bool WARPGROUPS = true; // strips of 64 columns by section 5b, one worker an SM\n", ""),
    ],
    "mid": [
        # two terms, n <= 1024: what is left to decide is in FACTS
        ("template <int C_, int G_, int CHUNKS_, int TERMS_>\n", "template <int C_, int G_, int CHUNKS_>\n"),
        ("  static constexpr int TERMS = TERMS_;          // fp16 terms of V, C and W' (see the docstring)\n", ""),
        ("CANCELLED = TERMS == 1 ? 1e-5f : 1e-4f, AMPLIFIED = TERMS == 1 ? 300.f : 30.f;", "CANCELLED = 1e-4f, AMPLIFIED = 30.f;"),
        ("O_PW = TERMS == 1 ? O_L : O_INBOX + SCRATCH, O_PWP = TERMS == 1 ? O_H : O_PW + PANEL * LD_SHIFT * 4;",
         "O_PW = O_INBOX + SCRATCH, O_PWP = O_PW + PANEL * LD_SHIFT * 4;"),
        ("  static_assert(TERMS == 1 ? O_PW + PANEL * LD_SHIFT * 4 <= 2 * STAGE && O_PWP + PANEL * LD_SHIFT * 4 <= O_PW\n"
         "                           : O_PWP + PANEL", "  static_assert(O_PWP + PANEL"),
        # the same text as n1024's
        ("DEVICE void update_quad(float (&a)[SUB + 4], int q", "template <int ROWS>\nDEVICE void update_quad(float (&a)[ROWS], int q"),
        ("  float g[SUB + 4];\n", "  float g[SUB + SPARE];\n"), ("  float a[SUB + 4];\n", "  float a[SUB + SPARE];\n"),
        ("  g[SUB] = g[SUB + 1] = g[SUB + 2] = g[SUB + 3] = 0.f;\n", "  UNROLL for (int r = SUB; r < SUB + SPARE; r++) g[r] = 0.f;\n"),
        ("  a[SUB] = a[SUB + 1] = a[SUB + 2] = a[SUB + 3] = 0.f;\n", "  UNROLL for (int r = SUB; r < SUB + SPARE; r++) a[r] = 0.f;\n"),
        ("DEVICE void warp_cholesky(", "template <int SPARE>\nDEVICE void warp_cholesky("), ("DEVICE void warp_top(", "template <int SPARE>\nDEVICE void warp_top("),
        ("warp_cholesky(z, me.lane, done, K::CANCELLED)", "warp_cholesky<4>(z, me.lane, done, K::CANCELLED)"), ("warp_top(z, me.lane)", "warp_top<4>(z, me.lane)"),
        ("V_BYTES = TERMS * STAGE;", "V_BYTES = 2 * STAGE;"),
        ("ISSUER = TERMS == 1 ? 0 : 128;", "ISSUER = 128;"),
        ("(K::TERMS == 1 ? (j + 1) & 1 : 0) * K::STAGE + me.group", "me.group"),
        ("(4 - K::OWNED) * 2048 * K::TERMS", "(4 - K::OWNED) * 4096"),
        ("128 * K::OWNED * K::TERMS", "256 * K::OWNED"),
        ("""// n <= TWO_TERMS_TO in two terms. The FP32-class file sets it to 1536 (everything); 800 gives one-term speed from 801 on.
#ifndef TWO_TERMS_TO
#define TWO_TERMS_TO 1536
#endif
template <class F>
static auto dispatch(int n, F f) {
  if constexpr (TWO_TERMS_TO >= 1) {
    if (n <= 1024 && n <= TWO_TERMS_TO) return f(Config<2, 4, 4, 2>());
  }
  if constexpr (TWO_TERMS_TO < 1024) {
    if (n <= 1024) return f(Config<2, 4, 4, 1>());
  }
  return f(Config<4, 3, 4, (TWO_TERMS_TO > 1024 ? 2 : 1)>());
}
""", "using Shape = Config<2, 4, 4>;  // n <= 1024\n"),
        ("  return dispatch(n, [&](auto k) { return (long)batch * ((n + PANEL - 1) / PANEL) * decltype(k)::C * decltype(k)::V_BYTES; });\n",
         "  return (long)batch * ((n + PANEL - 1) / PANEL) * Shape::C * Shape::V_BYTES;\n"),
        ("""  if (n > 1536) return -1;
  return dispatch(n, [&](auto k) { return run<decltype(k)>(args, batch); });
""", """  return n <= Shape::ROWS ? run<Shape>(args, batch) : -1;
"""),
    ],
    "n1024": [
        # the same text as mid's: SPARE is 0 here and 4 there
        ("DEVICE void update_quad(float (&a)[SUB], int q", "template <int ROWS>\nDEVICE void update_quad(float (&a)[ROWS], int q"),
        ("  float g[SUB];\n", "  float g[SUB + SPARE];\n"), ("  float a[SUB];\n", "  float a[SUB + SPARE];\n"),
        ("  const float g0 = 2.f * z.x[lane * (LD_X + 1)];\n", "  UNROLL for (int r = SUB; r < SUB + SPARE; r++) g[r] = 0.f;\n  const float g0 = 2.f * z.x[lane * (LD_X + 1)];\n"),
        ("  float iv[4], sign[4], l10,", "  UNROLL for (int r = SUB; r < SUB + SPARE; r++) a[r] = 0.f;\n  float iv[4], sign[4], l10,"),
        ("DEVICE void warp_top(", "template <int SPARE>\nDEVICE void warp_top("),
        ("warp_top(z, me.lane)", "warp_top<0>(z, me.lane)"),
        ("// Stops where a pivot cancels.\nDEVICE void warp_cholesky(const Scratch& z, int lane, int done) {", "// Stops where a pivot cancels. SPARE: registers behind the last row, never read; but what ptxas makes of the kernel depends on them.\ntemplate <int SPARE>\nDEVICE void warp_cholesky(const Scratch& z, int lane, int done, float cancelled) {"),
        ("fmaxf(CANCELLED * g0, ZERO_PIVOT)", "fmaxf(cancelled * g0, ZERO_PIVOT)"),
        ("warp_cholesky(z, me.lane, done);", "warp_cholesky<0>(z, me.lane, done, CANCELLED);"),
    ],
}

# what is always so in a family's routes: `if`s on it are folded
FACTS = {"mid": {"K::TERMS == 1": False, "K::TERMS == 2": True}, "large": {"WARPGROUPS": True}}

# ---- host: the same for every family: geqrf_<family>(a) gives (H, tau)
BINDING_EDITS: dict[str, list[tuple[str, str]]] = {
    "small": [("1 <= n <= 512; None", "1 <= n <= 384; None"), ("n < 1 || n > 512 ||", "n < 1 || n > 384 ||")],
    "n512": [
        ("std::vector<torch::Tensor> n512_geqrf(", "std::tuple<torch::Tensor, torch::Tensor> geqrf_n512("),
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"geqrf\", &n512_geqrf); }\n", ""),
    ],
    "mid": [("geqrf_n1024", "geqrf_mid")],
    "large": [
        ("std::vector<at::Tensor> geqrf_large(at::Tensor a, std::optional<at::Tensor> passes)", "std::tuple<at::Tensor, at::Tensor> geqrf_large(at::Tensor a)"),
        ("passes ? passes->data_ptr<int>() : nullptr", "nullptr"),
        # from v100 on everything needs kernels side by side (the question also sets larfb's shared memory)
        ("bool side_by_side(); Sizes sizes(int n, int batch); const char* run(const float*, float*, float*, void*, void*, void*, "
         "int*, void*, int, int); }\n// H and tau of every matrix of the batch. n is padded to a multiple of 128 with zero rows and columns, which changes nothing"
         " in the rest.\nstd::tuple<at::Tensor, at::Tensor> geqrf_large(",
         "bool side_by_side(); Sizes sizes(int n, int batch); const char* run(const float*, float*, float*, void*, void*, void*, "
         "int*, void*, int, int); }\n// H and tau of every matrix of the batch. n is padded to a multiple of 128 with zero rows and columns, which changes nothing"
         " in the rest.\nstatic std::tuple<at::Tensor, at::Tensor> factor("),
        ("bool side_by_side() { return large::side_by_side(); }\n",
         "std::optional<std::tuple<at::Tensor, at::Tensor>> geqrf_large(at::Tensor a) {\n  if (large::side_by_side()) return factor(a);\n"
         "  TORCH_WARN_ONCE(\"large: two kernels do not run side by side here (some profilers see to that): torch.geqrf serves its shapes\");\n"
         "  return {};\n}\n"),
    ],
}

# asm statements that are calls of the prelude
INLINE = [
    (r'asm volatile\("fence\.mbarrier_init\.release\.cluster;" ::: "memory"\);', "barrier_init_fence();"),
    (r'asm volatile\("griddepcontrol\.wait;"\s*::\s*:\s*:\s*"memory"\);', "grid_wait();"),
    (r'asm volatile\("griddepcontrol\.launch_dependents;"(?:\s*:::\s*"memory")?\);', "grid_release_next();"),
    (r'asm volatile\("griddepcontrol\.wait;\\ngriddepcontrol\.launch_dependents;" ::: "memory"\);', "grid_wait(); grid_release_next();"),
    (r'asm volatile\("prefetch\.global\.L2 \[%0\];" ::"l"\((.+?)\)\);', r"prefetch_l2(\1);"),
]

# a family's own helper under a name of the prelude's, because the machine code is better (or at least another) with it
OWN = {
    "small barrier_wait": "a barrier is waited for once, and parity 0 as an immediate is not a register",
}

# definitions that read differently from the prelude's but whose kernels came out the same (--prove)
EQUIVALENT = set("""
small split 6440ebd8
small mma eb8b5494
small barrier_init f20aa813
n512 pack 36fe9981
n512 mma 5cfb7b1c
n512 store_matrix 920c9986
n512 named_join 05dc6f63
n512 barrier_init df15e967
n512 bulk_store f0aeee48
n512 prefetch_l2 7066a329
n512 split 42ea7dbf
n512 load_matrix ae24765d
n512 load_matrix_transposed 3d4ed02e
mid #if cbfa2695
mid barrier_init 8be5050c
mid barrier_wait f961cf04
n1024 mma 5cfb7b1c
n1024 #if cbfa2695
mid map_address 27e9091e
n1024 map_address 27e9091e
large map_address 27e9091e
n512 barrier_wait a6d616b7
n1024 barrier_wait f961cf04
n1024 barrier_init 36b2c354
large barrier_init 8be5050c
large barrier_wait 9f082598
""".strip().splitlines())
