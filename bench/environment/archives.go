package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// zipped returns an archive of files.
func zipped(files map[string]string) (string, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(f, files[name])
		}
		if err != nil {
			return "", fmt.Errorf("write archive: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("write archive: %w", err)
	}
	return b.String(), nil
}

// goSums returns the lines of go.sum for a module and its version.
func goSums(module, mod, archive string) (string, error) {
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		return "", fmt.Errorf("read archive: %w", err)
	}
	var lines strings.Builder
	for _, f := range z.File { // in order
		content, err := f.Open()
		if err != nil {
			return "", fmt.Errorf("read archive: %w", err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil { //nolint:gosec // it was made here
			return "", fmt.Errorf("read archive: %w", err)
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum.Sum(nil), f.Name)
	}
	return module + " " + goSum(lines.String()) + "\n" + module + "/go.mod " +
		goSum(fmt.Sprintf("%x  go.mod\n", sha256.Sum256([]byte(mod)))) + "\n", nil
}

func goSum(lines string) string {
	sum := sha256.Sum256([]byte(lines))
	return "h1:" + base64.StdEncoding.EncodeToString(sum[:])
}
