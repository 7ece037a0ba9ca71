package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// pythonPackages are Debian's packages of pytest and of what builds an extension.
var pythonPackages = []string{
	"python3-pytest", "python3-pluggy", "python3-iniconfig", "python3-packaging", "python3-attr",
	"python3-setuptools-whl", "python3-wheel-whl",
}

// pythonPackage has an extension in C, which its set-up compiles. The private registry serves Debian's packages as
// wheels.
func (b *bench) pythonPackage(ctx context.Context, c *corp) (stranger, error) {
	root, err := b.debian(ctx, pythonPackages)
	if err != nil {
		return stranger{}, err
	}
	ready, err := filepath.Glob(filepath.Join(root, "*/usr/share/python-wheels/*.whl"))
	if err != nil {
		return stranger{}, fmt.Errorf("find wheels: %w", err)
	}
	for _, file := range ready {
		wheel, err := os.ReadFile(file)
		if err != nil {
			return stranger{}, fmt.Errorf("read wheel: %w", err)
		}
		c.wheel(filepath.Base(file), string(wheel))
	}
	const sites = "usr/lib/python3/dist-packages"
	described, err := filepath.Glob(filepath.Join(root, "*", sites, "*-info"))
	if err != nil {
		return stranger{}, fmt.Errorf("find packages: %w", err)
	}
	for _, info := range described {
		name, wheel, err := packWheel(info)
		if err != nil {
			return stranger{}, err
		}
		c.wheel(name, wheel)
	}
	return stranger{
		files: map[string]string{
			".gitignore": ".venv/\nbuild/\n*.egg-info/\n*.so\n__pycache__/\n",
			"pyproject.toml": "[build-system]\nrequires = [\"setuptools>=61\"]\n" +
				"build-backend = \"setuptools.build_meta\"\n\n[project]\nname = \"invoice\"\n" +
				"version = \"1.0.0\"\noptional-dependencies.dev = [\"pytest\"]\n",
			"setup.py": "from setuptools import Extension, setup\n\n" +
				"setup(ext_modules=[Extension(\"invoice._sum\", [\"src/invoice/_sum.c\"])])\n",
			"src/invoice/__init__.py": "from invoice._sum import add\n\n\ndef total(lines):\n    cents = 0\n" +
				"    for line in lines:\n        cents = add(cents, line)\n    return cents\n",
			"src/invoice/_sum.c": sumInC,
			"tests/test_invoice.py": "from invoice import total\n\n\n" +
				"def test_total():\n    assert total([28, 1]) == 29\n\n\n" +
				"def test_nothing():\n    assert total([]) == 0\n",
		},
		test: "pytest", passed: regexp.MustCompile(`=+ 2 passed in `),
		env:   map[string]string{"PIP_INDEX_URL": "https://" + c.address() + "/simple"},
		login: true,
	}, nil
}

const sumInC = `#include <Python.h>

static PyObject *add(PyObject *self, PyObject *args) {
    long a, b;
    if (!PyArg_ParseTuple(args, "ll", &a, &b)) return NULL;
    return PyLong_FromLong(a + b);
}

static PyMethodDef methods[] = {{"add", add, METH_VARARGS, "Add cents."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sum", NULL, -1, methods};

PyMODINIT_FUNC PyInit__sum(void) { return PyModule_Create(&module); }
`

// wheel serves a wheel, and its page of the index.
func (c *corp) wheel(name, content string) {
	project, _, _ := strings.Cut(name, "-")
	c.file("/wheels/"+name, content)
	c.file("/simple/"+project+"/", `<!DOCTYPE html><a href="/wheels/`+name+`">`+name+`</a>`)
}

// packWheel makes a wheel of the installed package that a directory describes, with what is beside it.
func packWheel(info string) (name, wheel string, err error) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(info), ".dist-info"), ".egg-info"), "-")
	name = parts[0] + "-" + parts[1]
	files := map[string]string{
		name + ".dist-info/WHEEL":  "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		name + ".dist-info/RECORD": "",
	}
	site := filepath.Dir(info)
	err = filepath.WalkDir(site, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(site, file)
		if err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(inside, filepath.Base(info)+"/"); ok {
			if rest = map[string]string{
				"PKG-INFO": "METADATA", "METADATA": "METADATA", "entry_points.txt": "entry_points.txt",
			}[rest]; rest == "" {
				return nil
			}
			inside = path.Join(name+".dist-info", rest)
		}
		content, err := os.ReadFile(file) //nolint:gosec // nothing else runs
		files[inside] = string(content)
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("pack %s: %w", name, err)
	}
	wheel, err = zipped(files)
	return name + "-py3-none-any.whl", wheel, err
}
