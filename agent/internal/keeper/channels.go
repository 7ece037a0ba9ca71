package keeper

import (
	"errors"
	"os"
	"syscall"
)

// channel is a pipe or socket pair between a worker and a keeper.
type channel struct{ worker, keeper *os.File }

// channels are all of them. sockets is unset unless the order has Ports.
type channels struct{ stdin, stdout, stderr, control, status, sockets channel }

func openChannels(order Order) (c *channels, err error) {
	c = &channels{}
	protocol := os.Pipe
	if order.Sealed {
		protocol = sealedPipe
	}
	for _, o := range []struct {
		channel  *channel
		open     func() (r, w *os.File, err error)
		toKeeper bool
	}{
		{&c.stdin, protocol, true},
		{&c.stdout, protocol, false},
		{&c.stderr, os.Pipe, false}, // any process may open /dev/stderr: nothing is decided by what is written there
		{&c.control, os.Pipe, true},
		{&c.status, os.Pipe, false},
	} {
		r, w, openErr := o.open()
		err = errors.Join(err, openErr)
		if *o.channel = (channel{worker: r, keeper: w}); o.toKeeper {
			*o.channel = channel{worker: w, keeper: r}
		}
	}
	if err == nil && len(order.Ports) > 0 {
		c.sockets.worker, c.sockets.keeper, err = socketPair()
	}
	if err != nil {
		c.closeWorkerEnds()
		c.closeKeeperEnds()
		return nil, err
	}
	for _, f := range []*os.File{c.stdin.keeper, c.stdout.keeper} { // programs expect blocking files
		_ = syscall.SetNonblock(int(f.Fd()), false)
	}
	return c, nil
}

func (c *channels) closeWorkerEnds() {
	for _, ch := range []channel{c.stdin, c.stdout, c.stderr, c.control, c.status, c.sockets} {
		_ = ch.worker.Close()
	}
}

func (c *channels) closeKeeperEnds() {
	for _, ch := range []channel{c.stdin, c.stdout, c.stderr, c.control, c.status, c.sockets} {
		_ = ch.keeper.Close()
	}
}
