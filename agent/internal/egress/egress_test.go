package egress

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ip   string
		want bool
	}{
		{"1.1.1.1", true},
		{"::ffff:1.1.1.1", true},
		{"2606:4700:4700::1111", true},
		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"10.0.0.1", false},
		{"100.64.0.1", false},
		{"127.0.0.1", false},
		{"169.254.169.254", false},
		{"172.16.0.1", false},
		{"192.0.0.8", false},
		{"192.168.0.1", false},
		{"198.18.0.1", false},
		{"203.0.113.1", false},
		{"224.0.0.1", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},
		{"::", false},
		{"::1", false},
		{"::127.0.0.1", false},
		{"::ffff:127.0.0.1", false},
		{"::ffff:169.254.169.254", false},
		{"64:ff9b::7f00:1", false},
		{"64:ff9b:1::1", false},
		{"100::1", false},
		{"2001:0:1::1", false},
		{"2002:7f00:1::", false},
		{"fc00::1", false},
		{"fd00:ec2::254", false},
		{"fe80::1", false},
		{"fec0::1", false},
		{"ff02::1", false},
	} {
		if got := Public(netip.MustParseAddr(c.ip)); got != c.want {
			t.Errorf("%s is public: %t", c.ip, got)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if ip, ok := netip.AddrFromSlice(a.(*net.IPNet).IP); ok && Public(ip) {
			t.Errorf("%s is an address of this machine", ip)
		}
	}
}

// A handshake is read that arrives in pieces, and one with a hidden name is refused.
func TestReadHello(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config *tls.Config
		host   string
		want   bool
	}{
		"the host":          {&tls.Config{ServerName: "x.example"}, "x.example", true},
		"capitals":          {&tls.Config{ServerName: "X.Example"}, "x.example", true},
		"another":           {&tls.Config{ServerName: "y.example"}, "x.example", false},
		"none":              {&tls.Config{InsecureSkipVerify: true}, "x.example", false},
		"an address":        {&tls.Config{ServerName: "9.9.9.9"}, "9.9.9.9", true},
		"a name of another": {&tls.Config{ServerName: "x.example"}, "9.9.9.9", false},
		"a hidden name": {&tls.Config{
			ServerName: "y.example", MinVersion: tls.VersionTLS13,
			EncryptedClientHelloConfigList: hiding(t, "x.example"),
		}, "x.example", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := net.Pipe()
			go func() { _ = tls.Client(pieces{there}, c.config).HandshakeContext(context.Background()) }()
			early := make([]byte, 3)
			if _, err := io.ReadFull(here, early); err != nil {
				t.Fatal(err)
			}
			hello, ok := readHello(early, here, c.host)
			_, _ = here.Close(), there.Close()
			if ok != c.want || len(hello) < 100 || hello[0] != 22 {
				t.Errorf("%t, and %d bytes", ok, len(hello))
			}
		})
	}
}

// pieces sends single bytes.
type pieces struct{ net.Conn }

func (p pieces) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := p.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// hiding returns a configuration by which a client encrypts the name that it asks for, and shows another.
func hiding(t *testing.T, shown string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	config := slices.Concat(
		[]byte{1, 0, 0x20}, // its number, and DHKEM(X25519, HKDF-SHA256)
		sized(key.PublicKey().Bytes()),
		sized([]byte{0, 1, 0, 1}), // HKDF-SHA256, AES-128-GCM
		[]byte{32, byte(len(shown))}, []byte(shown), []byte{0, 0},
	)
	return sized(slices.Concat(binary.BigEndian.AppendUint16(nil, encryptedHello), sized(config)))
}

// sized puts the length of b before it.
func sized(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }

// A tunnel lives as long as something passes in one direction, and is closed when nothing does for some minutes.
func TestIdleTunnel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, a := net.Pipe()
		b, server := net.Pipe()
		began := time.Now()
		over := make(chan struct{})
		go func() {
			join(a, b)
			close(over)
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		for range 10 {
			time.Sleep(idleLimit - time.Second) //nolint:forbidigo // in a bubble
			if _, err := server.Write([]byte("x")); err != nil {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
		}
		last := time.Now()
		<-over
		if idle := time.Since(last); idle < idleLimit || idle > 3*idleLimit {
			t.Errorf("closed after %s", idle)
		}
		_, _ = client.Close(), server.Close()
	})
}
