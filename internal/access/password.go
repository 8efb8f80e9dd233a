package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Cost of one password hash (argon2id, RFC 9106): 19 MiB and two passes are OWASP's minimum,
// about 40 ms of one core. The limits on stored parameters keep a forged row from exhausting
// the machine.
const (
	hashMemory  = 19 << 10 // KiB
	hashPasses  = 2
	hashThreads = 1
	saltSize    = 16
	hashSize    = 32

	maxHashMemory  = 256 << 10
	maxHashPasses  = 16
	maxHashThreads = 8

	// hashesAtOnce bounds the memory of concurrent logins.
	hashesAtOnce = 4
)

// Length of a password, in characters. The upper bound rejects bodies of megabytes.
const (
	minPassword = 12
	maxPassword = 256
)

// ErrPassword means that a new password is not acceptable.
var ErrPassword = errors.New("bad password")

var errHash = errors.New("a stored password hash cannot be read")

func checkPassword(password string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return fmt.Errorf("%w: not valid UTF-8", ErrPassword)
	case n < minPassword || n > maxPassword:
		return fmt.Errorf("%w: use %d to %d characters", ErrPassword, minPassword, maxPassword)
	case isCommon(password):
		return ErrCommon
	}
	return nil
}

// newOneTimePassword generates a password that is easy to read and type: 120 random bits in six
// groups of letters and the digits 2 to 7.
func newOneTimePassword() string {
	text := strings.ToLower(rand.Text())
	groups := make([]string, 6)
	for i := range groups {
		groups[i] = text[4*i : 4*i+4]
	}
	return strings.Join(groups, "-")
}

// hasher bounds how many passwords are hashed at once.
type hasher chan struct{}

func newHasher() hasher { return make(hasher, hashesAtOnce) }

// hash returns the PHC string of a password with a new salt.
func (h hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // crypto/rand never fails (Go 1.24)
	p := phc{memory: hashMemory, passes: hashPasses, threads: hashThreads, salt: salt}
	var err error
	if p.sum, err = h.derive(ctx, password, p, hashSize); err != nil {
		return "", err
	}
	return p.String(), nil
}

// matches reports whether the password matches the PHC string.
func (h hasher) matches(ctx context.Context, password, stored string) (bool, error) {
	p, err := parsePHC(stored)
	if err != nil {
		return false, err
	}
	sum, err := h.derive(ctx, password, p, uint32(len(p.sum)))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(sum, p.sum) == 1, nil
}

func (h hasher) derive(ctx context.Context, password string, p phc, size uint32) ([]byte, error) {
	select {
	case h <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h }()
	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.threads, size), nil
}

// phc is a password hash with its parameters, in the PHC string format:
// $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
type phc struct {
	memory, passes uint32
	threads        uint8
	salt, sum      []byte
}

func (p phc) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.threads,
		base64.RawStdEncoding.EncodeToString(p.salt), base64.RawStdEncoding.EncodeToString(p.sum))
}

func parsePHC(text string) (p phc, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.threads); err != nil {
		return p, errHash
	}
	if p.memory > maxHashMemory || p.passes < 1 || p.passes > maxHashPasses || p.threads < 1 || p.threads > maxHashThreads {
		return p, errHash
	}
	if p.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(p.salt) < 8 {
		return p, errHash
	}
	if p.sum, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(p.sum) < 16 || len(p.sum) > 64 {
		return p, errHash
	}
	return p, nil
}
