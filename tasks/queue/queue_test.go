package queue

import (
	"testing"
)

func TestDeliveryNumber(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		if got, err := DeliveryNumber("a", DeliveryID("a", n)); err != nil || got != n {
			t.Errorf("%d came back as %d, %v", n, got, err)
		}
	}
	for _, bad := range []string{"", "b", "a.r", "a.rx", "ab", "b.r1"} {
		if _, err := DeliveryNumber("a", bad); err == nil {
			t.Errorf("%q is taken for a delivery of a", bad)
		}
	}
}
