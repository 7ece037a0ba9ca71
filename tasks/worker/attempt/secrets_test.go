package attempt

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A file that cannot be read to its end does not count as one without secrets.
func TestFindText(t *testing.T) {
	t.Parallel()
	texts := [][]byte{[]byte("one-secret"), []byte("another")}
	broken := errors.New("input/output error")
	long := strings.Repeat("x", 90)
	for name, c := range map[string]struct {
		r    io.Reader
		want int
		err  error
	}{
		"none":        {strings.NewReader(long), -1, nil},
		"empty":       {strings.NewReader(""), -1, nil},
		"in pieces":   {iotest.OneByteReader(strings.NewReader(long + "one-secret" + long)), 0, nil},
		"at a bound":  {strings.NewReader(long + "xxxxxanother"), 1, nil},
		"at the end":  {strings.NewReader(long + long + "another"), 1, nil},
		"broken":      {io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)), -1, broken},
		"before that": {io.MultiReader(strings.NewReader("another"), iotest.ErrReader(broken)), 1, nil},
	} {
		got, err := findText(c.r, make([]byte, 100), texts)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}
