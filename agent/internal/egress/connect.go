package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// reserved are the networks that no public host is in, in addition to those that netip knows.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), // contain IPv4 addresses
	netip.MustParsePrefix("2001:db8::/32"),
}

// global contains all public IPv6 addresses. NAT64 (64:ff9b::/96) and other forms of IPv4 addresses are outside.
var global = netip.MustParsePrefix("2000::/3")

// Public reports whether an address is on the Internet and not one of this machine.
func Public(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && publicBeside(own, ip)
}

// publicBeside reports whether an address is on the Internet and not one of a machine that has those addresses.
func publicBeside(own []net.Addr, ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !global.Contains(ip) ||
		slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return false
	}
	return !slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip.AsSlice())
	})
}

// dial connects to a host. Every address is checked when it is dialled, whatever the resolver said before.
func (n *Network) dial(ctx context.Context, host, port string, private bool) (net.Conn, error) {
	d := net.Dialer{
		Timeout: dialLimit, Resolver: n.cfg.Resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err == nil && !private && !n.cfg.Public(at.Addr()) {
				err = errNotPublic
			}
			return err
		},
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// connect opens a connection for a tunnel, if need be through the worker's own proxy, which then resolves the name.
func (n *Network) connect(ctx context.Context, t target, private bool) (net.Conn, error) {
	via, err := n.proxy("https", t.address())
	if err != nil {
		return nil, err
	}
	if via == nil {
		return n.dial(ctx, t.host, t.port, private)
	}
	port := via.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[via.Scheme]
	}
	conn, err := n.dial(ctx, via.Hostname(), port, true)
	if err != nil {
		return nil, fmt.Errorf("connect to the worker's proxy: %w", err)
	}
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname(), MinVersion: tls.VersionTLS12})
	}
	_ = conn.SetDeadline(time.Now().Add(dialLimit))
	if err := askProxy(conn, t, via.User); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

// askProxy asks the worker's own proxy for a tunnel. It reads single bytes, because what follows the header belongs to
// the tunnel.
func askProxy(conn net.Conn, t target, user *url.Userinfo) error {
	request := "CONNECT " + t.address() + " HTTP/1.1\r\nHost: " + t.address() + "\r\n"
	if user != nil {
		password, _ := user.Password()
		request += "Proxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return fmt.Errorf("ask the worker's proxy: %w", err)
	}
	var header []byte
	for one := make([]byte, 1); !bytes.HasSuffix(header, []byte("\r\n\r\n")); header = append(header, one[0]) {
		if _, err := io.ReadFull(conn, one); err != nil {
			return fmt.Errorf("read the answer of the worker's proxy: %w", err)
		}
		if len(header) > maxHeader {
			return errors.New("the answer of the worker's proxy is too long")
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(header)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("read the answer of the worker's proxy: %w", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the worker's proxy answered %s", res.Status)
	}
	return nil
}

// maxHello bounds the first TLS message. Those of usual clients have at most 2 KB.
const maxHello = 64 << 10

// encryptedHello is the extension by which the name in a handshake can differ from the one that is visible.
const encryptedHello = 0xfe0d

// readHello reads the first TLS message of a client, of which the beginning was read, and reports whether it is for the
// host. hello is what it has read: nothing if the client has gone.
func readHello(early []byte, client net.Conn, host string) (hello []byte, ok bool) {
	c := &recorder{Conn: client, from: io.LimitReader(io.MultiReader(bytes.NewReader(early), client), maxHello)}
	err := tls.Server(c, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, valid := hostlist.Normalize(h.ServerName)
			_, addr := netip.ParseAddr(host)
			ok = valid && name == host || h.ServerName == "" && addr == nil // addresses are not sent
			ok = ok && !slices.Contains(h.Extensions, encryptedHello)
			return nil, errHelloRead
		},
	}).HandshakeContext(context.Background())
	return c.read.Bytes(), ok && errors.Is(err, errHelloRead)
}

var errHelloRead = errors.New("the first message was read")

// recorder is a connection that is only read, and keeps what was read.
type recorder struct {
	net.Conn

	from io.Reader
	read bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.read.Write(b[:n])
	return n, err
}

func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }

// chunk is after how many bytes the time limit of a tunnel begins again.
const chunk = 4 << 20

// join copies between two connections until both directions have ended, one fails, or nothing has passed for some
// minutes. Between TCP connections the kernel moves the bytes.
func join(a, b net.Conn) {
	var moved atomic.Int64 // when something passed last, in Unix nanoseconds
	moved.Store(time.Now().UnixNano())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(a, b, &moved)
	}()
	pump(b, a, &moved)
	<-done
}

// pump copies one direction of a tunnel.
func pump(to, from net.Conn, moved *atomic.Int64) {
	for {
		_ = from.SetReadDeadline(time.Now().Add(idleLimit))
		n, err := io.Copy(to, io.LimitReader(from, chunk))
		if n > 0 {
			moved.Store(time.Now().UnixNano())
		}
		idle := time.Since(time.Unix(0, moved.Load()))
		switch {
		case err == nil && n == chunk, isTimeout(err) && idle < 2*idleLimit: // the other direction reports late
			continue
		case err == nil && closeWrite(to) == nil:
			return // the other direction may go on
		}
		_, _ = to.Close(), from.Close()
		return
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// closeWrite tells the other side that nothing more comes.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Relay connects every client of a listener to an address of this machine, and closes the listener with the proxy.
func (p *Proxy) Relay(l net.Listener, address string) {
	slots := make(chan struct{}, MaxConns)
	stop := context.AfterFunc(p.over, func() { _ = l.Close() })
	p.open.Go(func() {
		defer stop()
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case slots <- struct{}{}:
				p.open.Go(func() {
					p.relay(client, address)
					<-slots
				})
			default:
				_ = client.Close()
			}
		}
	})
}

func (p *Proxy) relay(client net.Conn, address string) {
	defer client.Close()
	server, err := (&net.Dialer{Timeout: dialLimit}).DialContext(p.over, "tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(p.over, func() { _, _ = client.Close(), server.Close() })()
	join(client, server)
}
