"""prove.py BASE.cubin NEW.cubin: is every kernel of NEW one of BASE's, instruction by instruction (names aside)?

Compares, for each kernel: cuobjdump's SASS with encodings, the raw bytes of .text, registers, barriers, shared memory, and the
constant banks. Kernels of BASE that NEW does not have are listed: allowed only where no route reaches them."""
import hashlib, os, re, struct, subprocess, sys
CUOBJDUMP = os.environ.get("CUOBJDUMP", "cuobjdump")


def sass(cubin):
    """function name -> text, symbols replaced by their order of appearance"""
    out = subprocess.run([CUOBJDUMP, "-sass", cubin], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r"\n\s*Function : ", out)[1:]:
        name, body = part.split("\n", 1)
        body = body.split("\n\t\t..........")[0]
        names = {}
        body = re.sub(r"\b_Z\w+|\$[\w$.]+", lambda m: names.setdefault(m.group(), f"sym{len(names)}"), body)
        found[name.strip()] = body
    return found


def attributes(b):
    """.nv.info of a kernel without the numbers of symbols, which count the other kernels of the file"""
    out, at = [], 0
    while at < len(b):
        form, attribute = b[at], b[at + 1]
        value = b[at + 2:at + 4]
        at += 4
        if form == 4:                                 # as many bytes as `value` says
            size = struct.unpack("<H", value)[0]
            value, at = b[at:at + size], at + size
            if attribute == 0x0a:                     # the parameters' bank: symbol, place
                value = value[4:]
        out.append((form, attribute, value))
    return out


def elf(cubin):
    """kernel -> (registers, bytes of .text, of .nv.constant*, sizes of .nv.shared) by section"""
    b = open(cubin, "rb").read()
    shoff, = struct.unpack_from("<Q", b, 0x28)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", b, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", b, shoff + i * shentsize) for i in range(shnum)]
    strings = heads[shstrndx]
    name = lambda h: b[strings[4] + h[0]:b.index(b"\0", strings[4] + h[0])].decode()
    data = lambda h: b"" if h[1] == 8 else b[h[4]:h[4] + h[5]]
    out = {}
    for h in heads:
        n = name(h)
        if n.startswith(".text."):
            out.setdefault(n[6:], {}).update(text=hashlib.sha256(data(h)).hexdigest(), size=h[5])
        m = re.match(r"\.nv\.(constant\d+|shared|info)\.(.+)", n)
        if m:
            out.setdefault(m.group(2), {})[m.group(1)] = (h[5], attributes(data(h)) if m.group(1) == "info" else hashlib.sha256(data(h)).hexdigest())
    for n, use in re.findall(r"Function (\S+):\n\s*(.*)", subprocess.run([CUOBJDUMP, "-res-usage", cubin], capture_output=True, text=True, check=True).stdout):
        out[n.rstrip(":")]["use"] = use
        out[n.rstrip(":")]["registers"] = int(re.search(r"REG:(\d+)", use).group(1))
    return out


def main(base, new):
    sb, sn, eb, en = sass(base), sass(new), elf(base), elf(new)
    left = dict(sb)
    bad = 0
    for n, body in sn.items():
        match = [m for m in left if left[m] == body and {k: v for k, v in eb[m].items()} == en[n]]
        exact = n if n in match else match[0] if match else None
        count = en[n]["size"] // 16
        if exact is None:
            bad += 1
            close = [m for m in left if left[m] == body]
            print(f"  DIFFERENT {n[:90]} {en[n].get('registers')} registers, {en[n].get('size')} bytes{' (SASS same, resources not)' if close else ''}")
        else:
            del left[exact]
            print(f"  identical {n[:70]}: {count} instructions, {en[n]['registers']} registers")
    for m in left:
        print(f"  only in base: {m[:110]} ({eb[m].get('size')} bytes)")
    return bad


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
