package instructions

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a directory with a plugin.
const (
	maxPluginFiles = 1_000
	maxPlugin      = 16 << 20 // bytes of all files
)

// ReadPlugin returns the skills, commands and agents of a directory, which is a plugin of the CLI or one skill, and the
// checksum of all its files: that of the lines that sha256sum prints about them, in the order of their names.
func ReadPlugin(dir string) (set Set, sum string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return set, "", err
	}
	defer root.Close()
	files, err := contents(root.FS())
	if err != nil {
		return set, "", err
	}
	prefix := ".claude/"
	if _, is := files["SKILL.md"]; is {
		prefix += "skills/" + filepath.Base(dir) + "/"
	}
	var lines strings.Builder
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&lines, "%x  ./%s\n", sha256.Sum256(files[name]), name)
		if name = prefix + name; skillFile.MatchString(name) {
			names = append(names, name)
		}
	}
	set, err = Collect(names, func(names []string, _, _ int) (blobs []Blob, _ error) {
		for _, name := range names {
			content := files[strings.TrimPrefix(name, prefix)]
			blobs = append(blobs, Blob{Content: string(content), Size: len(content)})
		}
		return blobs, nil
	})
	if err == nil && len(set.Names()) == 0 {
		err = errors.New("it has neither skills, commands nor agents, nor a SKILL.md")
	}
	return set, fmt.Sprintf("%x", sha256.Sum256([]byte(lines.String()))), err
}

// contents returns the contents of all files by their names.
func contents(dir fs.FS) (map[string][]byte, error) {
	files, size := map[string][]byte{}, int64(0)
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// Also of a directory: with a line end, its file could have the lines of other files.
		if strings.ContainsAny(name, "\\\n\r") || !utf8.ValidString(name) {
			return fmt.Errorf("%q has a line end or a backslash in its name, or is not UTF-8", name)
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%q is no file", name)
		}
		if size += info.Size(); size > maxPlugin || len(files) == maxPluginFiles {
			return fmt.Errorf("it has more than %d files or %d MiB", maxPluginFiles, maxPlugin>>20)
		}
		files[name], err = fs.ReadFile(dir, name)
		return err
	})
	return files, err
}
