package workspace

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bomb returns a pack of two objects, a few kilobytes long: zeros, and a delta that repeats them to 640 MiB.
func bomb(t *testing.T) []byte {
	t.Helper()
	const base, copies = 1<<24 - 1, 40
	varint := func(n uint64) (b []byte) {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(b, byte(n))
	}
	var pack bytes.Buffer
	pack.WriteString("PACK")
	pack.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), 2))
	object := func(kind byte, header, content []byte) {
		size := uint64(len(content))
		pack.Write(append([]byte{kind<<4 | byte(size&15) | 0x80}, varint(size>>4)...))
		pack.Write(header)
		z := zlib.NewWriter(&pack)
		if _, err := z.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const blob, delta = 3, 6
	object(blob, nil, make([]byte, base))
	back := pack.Len() - len("PACK") - 8 // how far the first object is behind the second
	offset := []byte{byte(back & 0x7f)}
	for n := back >> 7; n > 0; n >>= 7 {
		n--
		offset = append([]byte{byte(n&0x7f) | 0x80}, offset...)
	}
	steps := bytes.Repeat([]byte{0x80 | 0x70, 0xff, 0xff, 0xff}, copies) // each copies all
	object(delta, offset, append(append(varint(base), varint(base*copies)...), steps...))
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.Bytes()
}

// A few bytes of an agent do not take much memory of the worker.
func TestPackIsUnpackedWithinBounds(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, Want{Thread: "t", Repo: "acme/api", Base: "main"})
	path := c.Dir + "/.git/objects/pack/pack-" + strings.Repeat("b", 40) + ".pack"
	touched(t, path)
	if err := os.WriteFile(path, bomb(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := w.shadow(t.Context(), c, latest)
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	found, err := filepath.Glob(s.dir + "/objects/pack/*.pack")
	if err != nil || len(found) > 0 {
		t.Errorf("error %v, unpacked %v", err, found)
	}
}
