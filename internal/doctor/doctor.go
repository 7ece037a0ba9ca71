// Package doctor holds what a source or a forge reports about the set-up of the service it works with.
package doctor

import (
	"crypto/x509"
	"errors"
)

// Finding is one fact about how a service is set up, in words for an operator.
type Finding struct {
	What   string // the state
	Why    string // its consequence; empty if all is well
	Remedy string
	Fatal  bool // nothing works until it is fixed
}

// Unreachable returns what an operator can do about a service that cannot be reached. setting says where its address
// comes from.
func Unreachable(err error, setting string) (remedy string) {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return "Set SSL_CERT_FILE to the certificate of the authority that signed what the proxy or the server shows."
	}
	return "Check the network and " + setting + "."
}
