package workspace

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Signer signs commits with an SSH key, which it holds in memory: git and its helpers do not get it. It is safe for
// concurrent use.
type Signer struct {
	key    ssh.AlgorithmSigner
	hash   string // algorithm of a signature
	prefix []byte // of each signature in binary, up to the signature itself
}

// The parts of a signature in OpenSSH's format (PROTOCOL.sshsig).
const (
	sshMagic     = "SSHSIG"
	sshNamespace = "git"
	sshDigest    = "sha512"
	sshBegin     = "-----BEGIN SSH SIGNATURE-----\n"
	sshEnd       = "-----END SSH SIGNATURE-----"
	sshColumns   = 70
)

// NewSigner reads a private SSH key without a passphrase, as ssh-keygen writes it. The error shows nothing of it.
func NewSigner(text []byte) (*Signer, error) {
	key, err := ssh.ParsePrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, errors.New("read signing key: it has a passphrase")
	}
	own, ok := key.(ssh.AlgorithmSigner)
	if err != nil || !ok {
		return nil, errors.New("read signing key: it is not a private SSH key")
	}
	s := &Signer{key: own, hash: key.PublicKey().Type()}
	if s.hash == ssh.KeyAlgoRSA {
		s.hash = ssh.KeyAlgoRSASHA512
	}
	s.prefix = append([]byte(sshMagic), ssh.Marshal(struct {
		Version                          uint32
		Key, Namespace, Reserved, Digest string
	}{1, string(key.PublicKey().Marshal()), sshNamespace, "", sshDigest})...)
	return s, nil
}

// PublicKey returns the public key in one line, as authorized_keys and GitHub have it.
func (s *Signer) PublicKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.key.PublicKey())))
}

// digested returns what a signature of a text signs.
func digested(text string) []byte {
	sum := sha512.Sum512([]byte(text))
	return append([]byte(sshMagic), ssh.Marshal(struct{ Namespace, Reserved, Digest, Sum string }{
		sshNamespace, "", sshDigest, string(sum[:]),
	})...)
}

// sign returns the signature of a text, as git stores it in a commit.
func (s *Signer) sign(text string) (string, error) {
	made, err := s.key.SignWithAlgorithm(rand.Reader, digested(text), s.hash)
	if err != nil {
		return "", fmt.Errorf("sign commit: %w", err)
	}
	binary := append(bytes.Clone(s.prefix), ssh.Marshal(struct{ Signature string }{string(ssh.Marshal(made))})...)
	var b strings.Builder
	b.WriteString(sshBegin)
	for left := base64.StdEncoding.EncodeToString(binary); left != ""; {
		line := left[:min(len(left), sshColumns)]
		b.WriteString(line + "\n")
		left = left[len(line):]
	}
	return b.String() + sshEnd, nil
}

// made reports whether a signature is one of the text by this key.
func (s *Signer) made(signature, text string) bool {
	inner, begun := strings.CutPrefix(signature, sshBegin)
	inner, ended := strings.CutSuffix(inner, sshEnd)
	binary, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(inner, "\n", ""))
	rest, own := bytes.CutPrefix(binary, s.prefix)
	if !begun || !ended || err != nil || !own {
		return false
	}
	var packed struct{ Signature string }
	var one ssh.Signature
	if ssh.Unmarshal(rest, &packed) != nil || ssh.Unmarshal([]byte(packed.Signature), &one) != nil {
		return false
	}
	return s.key.PublicKey().Verify(digested(text), &one) == nil
}
