package github

import (
	"strings"
	"testing"
)

func TestHeadAndTail(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, logHead, logHead + logTail} {
		if got := must(headAndTail(strings.NewReader(strings.Repeat("x", size)))); len(got) != size {
			t.Errorf("of %d bytes there are %d", size, len(got))
		}
	}
	long := "A" + strings.Repeat("x", 1_000_000) + "Z"
	got := must(headAndTail(strings.NewReader(long)))
	if !strings.HasPrefix(got, "Ax") || !strings.HasSuffix(got, "xZ") ||
		!strings.Contains(got, "988002 bytes are left out") || len(got) > logHead+logTail+100 {
		t.Errorf("%d bytes: %.20s", len(got), got)
	}
}
