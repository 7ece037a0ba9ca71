package attempt

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

func unpack(t *testing.T, data []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// noise returns lines that do not compress well.
func noise(size int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d ", n)
		for range 20 + r.IntN(100) {
			b.WriteByte(byte('!' + r.IntN(90)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPackKeepsAllThatFits(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"short": "one\ntwo\n", "no end": "one\ntwo", "packs well": strings.Repeat("the same again\n", 1<<20),
		"fills it": noise(2 << 20), "one line": strings.Repeat("x", 3<<20),
	} {
		before, behind := "of an earlier run\n", "of a later one\n"
		from := int64(len(before))
		data, err := pack(strings.NewReader(before+text+behind), from, from+int64(len(text)), keptPeople,
			cutLine(tasks.PeopleLog))
		if err != nil {
			t.Fatal(err)
		}
		if got := unpack(t, data); got != text {
			t.Errorf("%s: %d bytes of %d", name, len(got), len(text))
		}
		if len(data) > keptPeople {
			t.Errorf("%s: packed into %d bytes, limit %d", name, len(data), keptPeople)
		}
	}
}

func TestPackCutsTheMiddle(t *testing.T) {
	t.Parallel()
	late := noise(3 << 20)
	for name, text := range map[string]string{
		"noise": noise(20 << 20), "packs well at first": strings.Repeat("the same again\n", 1<<20) + late,
		"packs well at last": late + late + strings.Repeat("the same again\n", 1<<20),
	} {
		data, err := pack(strings.NewReader(text), 0, int64(len(text)), keptPeople, cutLine(tasks.PeopleLog))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > keptPeople || name == "noise" && len(data) < keptPeople*4/5 {
			t.Errorf("%s: packed into %d bytes, limit %d", name, len(data), keptPeople)
		}
		got := unpack(t, data)
		head, rest, found := strings.Cut(got, "[… ")
		var missing int
		count, tail, _ := strings.Cut(rest, "]\n")
		if _, err := fmt.Sscanf(count, "%d bytes", &missing); err != nil || !found {
			t.Fatalf("%s: it does not say that it was cut: %v", name, err)
		}
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) ||
			len(head)+missing+len(tail) != len(text) {
			t.Errorf("%s: %d + %d + %d bytes of %d", name, len(head), missing, len(tail), len(text))
		}
		if !strings.HasSuffix(head, "\n") || text[len(text)-len(tail)-1] != '\n' {
			t.Errorf("%s: it is cut in the middle of a line", name)
		}
		if len(head) < len(text)/100 || len(tail) < len(text)/100 {
			t.Errorf("%s: %d bytes of the beginning and %d of the end are little", name, len(head), len(tail))
		}
	}
}
