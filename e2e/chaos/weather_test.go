package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWeatherFailsOncePerStorm(t *testing.T) {
	t.Parallel()
	var effects atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		effects.Add(1)
		_, _ = io.WriteString(w, r.URL.Path+" "+string(body))
	}))
	defer behind.Close()
	w, err := newWeather(model, behind.URL, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	post := func() (status int, said string, header http.Header, err error) {
		resp, err := http.Post(w.url+"/v1", "text/plain", strings.NewReader("hello"))
		if err != nil {
			return 0, "", nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), resp.Header, err
	}
	if status, said, _, err := post(); status != 200 || said != "/v1 hello" || err != nil {
		t.Fatalf("fair weather: %d %q %v", status, said, err)
	}
	for _, c := range []struct {
		manner  manner
		status  int // 0: no answer
		effects int64
	}{
		{tooMany, 429, 0}, {overloaded, 529, 0}, {away, 503, 0}, {exhausted, 429, 0}, {reset, 0, 0}, {lost, 0, 1},
	} {
		before := effects.Load()
		w.brew(c.manner)
		status, _, header, err := post()
		if status != c.status || (err == nil) == (c.status == 0) || effects.Load()-before != c.effects {
			t.Errorf("%s: %d, %v, %d effects", c.manner, status, err, effects.Load()-before)
		}
		if (header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected") != (c.manner == exhausted) {
			t.Errorf("%s: %v", c.manner, header)
		}
	}
	if diff := cmp.Diff(map[manner]int{
		tooMany: 1, overloaded: 1, away: 1, exhausted: 1, reset: 1, lost: 1,
	}, w.failed()); diff != "" {
		t.Error(diff)
	}
	w.service = inSlack
	w.brew(lost) // this request says nothing, and passes
	if status, _, _, _ := post(); status != 200 {
		t.Errorf("a lost answer to what says nothing: %d", status)
	}
	w.brew(broken)
	w.clear()
	if status, _, _, _ := post(); status != 200 {
		t.Errorf("after clearing up: %d", status)
	}
}
