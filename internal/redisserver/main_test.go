package redisserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// orphanEnv makes the test binary the process that is killed with -9 in TestDiesWithItsParent.
const orphanEnv = "REDISSERVER_TEST_PARENT"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "-": // a redis-server that never listens
		_, _ = io.Copy(io.Discard, os.Stdin)
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		fmt.Println(os.Getpid())
		<-hup
	case os.Getenv(orphanEnv) != "":
		path, _ := findForTest()
		s, err := Start(context.Background(), Config{Path: path})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.URL())
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed, or until the test is gone
		os.Exit(0)
	}
	os.Exit(m.Run())
}
