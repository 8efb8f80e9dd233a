package seal

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keySize is that of AES-256.
const keySize = 32

// maxKeys bounds a key file. Rotation needs two keys; more than a handful means
// that re-sealing never ran.
const maxKeys = 16

// maxFile holds maxKeys lines of the longest form many times over.
const maxFile = 16 << 10

// ParseKeys reads master keys as they stand in a key file or in
// BACKSTOP_MASTER_KEY: 32 bytes each as base64 or hex, one a line or separated
// by commas, the current one first and older ones after it.
//
// To rotate, put a new key in front, restart, re-seal, and remove the old one.
func ParseKeys(text string) (*Keyring, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	if len(words) > maxKeys {
		return nil, fmt.Errorf("%d master keys: keep the current one and those in use, at most %d", len(words), maxKeys)
	}
	keys := make([][]byte, len(words))
	for i, word := range words {
		key, ok := decodeKey(word)
		if !ok {
			return nil, fmt.Errorf("master key %d is not %d bytes as base64 (44 characters) or hex (64 characters): make one with `openssl rand -base64 32`", i+1, keySize)
		}
		keys[i] = key
	}
	return NewKeyring(keys...)
}

func decodeKey(word string) ([]byte, bool) {
	key, err := hex.DecodeString(word)
	if len(word) != hex.EncodedLen(keySize) {
		standard := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimSuffix(word, "="))
		key, err = base64.RawStdEncoding.Strict().DecodeString(standard)
	}
	return key, err == nil && len(key) == keySize
}

// Load reads the key file at path. It refuses a file that others on the machine can
// change, or that everybody can read. Its group may read it: a service manager gives
// the file to root and lets the service read it so. A missing file is fs.ErrNotExist.
func Load(path string) (*Keyring, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	keyring, err := ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("master key file %s: %w", path, err)
	}
	return keyring, nil
}

// LoadOrCreate reads the key file at path, or makes one with a new random key
// and mode 0600 where none is. Of several processes that start at once, one
// makes the file and all read it.
func LoadOrCreate(path string) (*Keyring, error) {
	keyring, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keyring, err
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make master key file %s: %w", path, err)
	}
	return Load(path)
}

func readPrivate(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open master key file: %w", err)
	}
	defer f.Close()
	// The open file is asked, not the path: it cannot change in between.
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("look at master key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("master key file %s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 || mode&0o004 != 0 && !isPrivateFolder(path) {
		return "", fmt.Errorf("master key file %s can be read or written by others (mode %04o): run chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read master key file: %w", err)
	}
	if len(text) > maxFile {
		return "", fmt.Errorf("master key file %s is larger than %d bytes: is it the right file?", path, maxFile)
	}
	return string(text), nil
}

// secretsFolder is where containers get their secrets.
var secretsFolder = "/run/secrets"

// isPrivateFolder says that the file lies in a folder that systemd or a container
// made for this service alone, in which the modes of files say nothing.
func isPrivateFolder(path string) bool {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, folder := range []string{os.Getenv("CREDENTIALS_DIRECTORY"), secretsFolder} {
		if folder, err = filepath.EvalSymlinks(folder); err != nil || !filepath.IsAbs(folder) {
			continue
		}
		if inside, err := filepath.Rel(folder, file); err == nil && filepath.IsLocal(inside) {
			return true
		}
	}
	return false
}

// create writes a new key to a file of its own and links it to path when it is
// complete and on disk: nobody ever sees half a key at path, and a key that is
// there already is never replaced (fs.ErrExist).
func create(path string) error {
	folder := filepath.Dir(path)
	draft := filepath.Join(folder, ".master-key-"+rand.Text())
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(draft)
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails: it crashes the program instead
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the new name itself survive a power cut: a lost key would
// take every sealed secret with it.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
