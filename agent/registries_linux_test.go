package agent

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"
)

// registries serves one package, pad, as registries of npm, Go and Python do: below /npm, /go and /simple.
func registries(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	file := func(path string, content []byte) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	}
	tarball := packed(t, map[string]string{
		"package/package.json": `{"name":"pad","version":"1.0.0","main":"pad.js"}`,
		"package/pad.js":       `module.exports = "padded"`,
	})
	file("/npm/pad/-/pad-1.0.0.tgz", tarball)
	mux.HandleFunc("GET /npm/pad", func(w http.ResponseWriter, req *http.Request) {
		sum, old := sha512.Sum512(tarball), sha1.Sum(tarball)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "pad", "dist-tags": map[string]string{"latest": "1.0.0"},
			"versions": map[string]any{"1.0.0": map[string]any{
				"name": "pad", "version": "1.0.0", "main": "pad.js", "dist": map[string]string{
					"tarball":   "https://" + req.Host + "/npm/pad/-/pad-1.0.0.tgz",
					"shasum":    hex.EncodeToString(old[:]),
					"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				},
			}},
		})
	})
	const module = "module example.org/pad\n\ngo 1.21\n"
	file("/go/example.org/pad/@v/list", []byte("v1.0.0\n"))
	file("/go/example.org/pad/@v/v1.0.0.info", []byte(`{"Version":"v1.0.0","Time":"2026-01-02T03:04:05Z"}`))
	file("/go/example.org/pad/@v/v1.0.0.mod", []byte(module))
	file("/go/example.org/pad/@v/v1.0.0.zip", zipped(t, map[string]string{
		"example.org/pad@v1.0.0/go.mod": module, "example.org/pad@v1.0.0/pad.go": "package pad\n",
	}))
	file("/simple/pad/",
		[]byte(`<!DOCTYPE html><a href="/wheels/pad-1.0.0-py3-none-any.whl">pad-1.0.0-py3-none-any.whl</a>`))
	file("/wheels/pad-1.0.0-py3-none-any.whl", zipped(t, map[string]string{
		"pad.py":                       "pad = 'padded'\n",
		"pad-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pad\nVersion: 1.0.0\n",
		"pad-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"pad-1.0.0.dist-info/RECORD":   "pad.py,,\n",
	}))
	return mux
}

func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	for name, content := range files {
		err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		if err == nil {
			_, err = a.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
