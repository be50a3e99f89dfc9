import os, sys, importlib.util
os.environ['TORCH_EXTENSIONS_DIR'] = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ext')
sys.path.insert(0, os.environ.get('REPO', '/work/main'))
def load(name):
    spec = importlib.util.spec_from_file_location('sub', os.path.join(os.environ.get('REPO', '/work/main'), 'submissions', name)); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); return m
