package instructions

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// maxNames is how many names of a directory are searched for instructions.
const maxNames = 20_000

// ReadDir returns the instructions in a directory that is no clone. It follows links to files of the directory only.
func ReadDir(dir string) (set Set, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return set, err
	}
	defer root.Close()
	names, whole := namesIn(root)
	set, err = Collect(names, func(names []string, most, room int) (blobs []Blob, _ error) {
		for _, name := range names {
			b := readIn(root, name, most, room)
			room -= len(b.Content)
			blobs = append(blobs, b)
		}
		return blobs, nil
	})
	if !whole {
		set.Notes = append(set.Notes, fmt.Sprintf("Only %d files of the directory, from the top down, were searched.",
			maxNames))
	}
	return set, err
}

// namesIn returns the names of the files of a directory, those at the top first, and whether these are all. What cannot
// be read is left out: the agent cannot read it either.
func namesIn(root *os.Root) (names []string, whole bool) {
	left := maxNames
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		dir, err := root.Open(queue[0])
		if err != nil {
			continue
		}
		entries, _ := dir.ReadDir(left + 1)
		_ = dir.Close()
		if left -= len(entries); left < 0 {
			return names, false
		}
		for _, e := range entries {
			switch name := path.Join(queue[0], e.Name()); {
			case !e.IsDir():
				names = append(names, name)
			case !slices.Contains([]string{".git", "node_modules"}, e.Name()):
				queue = append(queue, name)
			}
		}
	}
	return names, true
}

// readIn reads a file. Opening a pipe does not block.
func readIn(root *os.Root, name string, most, room int) Blob {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Blob{Size: -1}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return Blob{Size: -1}
	}
	b := Blob{Size: int(info.Size())}
	if b.Unread = b.Size > room; b.Unread || b.Size > most {
		return b
	}
	text, err := io.ReadAll(io.LimitReader(f, info.Size()))
	if err != nil {
		return Blob{Size: -1}
	}
	b.Content = string(text)
	return b
}
