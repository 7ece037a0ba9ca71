package queue

import (
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"
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

// Every package that uses a type which leads to a client of go-redis compiles all methods of that client again, which
// takes 1.6 s of CPU. Most of errand's packages use a queue or a store.
func TestLeadsToNoClient(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(at reflect.Type, path string) {
		if seen[at] {
			return
		}
		seen[at] = true
		path += " " + at.String()
		switch at.Kind() {
		case reflect.Struct:
			if at == reflect.TypeFor[redis.Client]() {
				t.Errorf("there is a way:%s", path)
			}
			for f := range at.Fields() {
				walk(f.Type, path)
			}
		case reflect.Map:
			walk(at.Key(), path)
			walk(at.Elem(), path)
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			walk(at.Elem(), path)
		case reflect.Func:
			for in := range at.Ins() {
				walk(in, path)
			}
			for out := range at.Outs() {
				walk(out, path)
			}
		default:
		}
		for m := range at.Methods() {
			walk(m.Type, path)
		}
	}
	walk(reflect.TypeFor[*Queue](), "")
}
