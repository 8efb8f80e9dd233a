package fakemerchant

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Certificate is the kind of certificate that a merchant presents.
type Certificate int

// Certificates of a merchant. All are self-signed; senders that do not trust Merchant.Roots see
// an unknown authority.
const (
	NoTLS      Certificate = iota
	ValidTLS               // for 127.0.0.1 and localhost
	ExpiredTLS             // the same, expired yesterday
	OtherTLS               // for another name
)

// Issue creates a certificate for 127.0.0.1 and localhost, usable as server and client, and the
// pool that trusts it.
func Issue() (tls.Certificate, *x509.CertPool, error) { return issue(ValidTLS) }

// issue creates a certificate and the pool that trusts it.
func issue(kind Certificate) (tls.Certificate, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "merchant of a test"},
		NotBefore:    now.Add(-48 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		BasicConstraintsValid: true, IsCA: true,
	}
	switch kind {
	case ExpiredTLS:
		template.NotAfter = now.Add(-24 * time.Hour)
	case OtherTLS:
		template.DNSNames, template.IPAddresses = []string{"other.example"}, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("sign certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("read certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots, nil
}
