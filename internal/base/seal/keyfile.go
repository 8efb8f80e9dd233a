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

// keySize is the key size of AES-256, in bytes.
const keySize = 32

// maxKeys bounds a key file. Rotation needs two keys; many more mean that reseal was never
// run.
const maxKeys = 16

// maxFile is far above the size of maxKeys lines in the longest form, in bytes.
const maxFile = 16 << 10

// ParseKeys reads master keys in the form of a key file or BACKSTOP_MASTER_KEY: 32 bytes
// each as base64 or hex, one per line or separated by commas, the current one first and
// older ones after it.
//
// To rotate, add a new key at the beginning, restart, reseal, and remove the old one.
func ParseKeys(text string) (*Keyring, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	if len(words) > maxKeys {
		return nil, fmt.Errorf("%d master keys: keep the current one and those still in use, at most %d", len(words), maxKeys)
	}
	keys := make([][]byte, len(words))
	for i, word := range words {
		key, ok := decodeKey(word)
		if !ok {
			return nil, fmt.Errorf(
				"master key %d is not %d bytes as base64 (44 characters) or hex (64 characters): make one with `openssl rand -base64 32`",
				i+1, keySize)
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

// Load reads the key file at path. It refuses a file that other users can write, or that
// is world-readable. Its group may read it: service managers pass files owned by root to a
// service this way. A missing file is fs.ErrNotExist.
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

// LoadOrCreate reads the key file at path, or creates it with a new random key and mode
// 0600. Of several processes that start at once, one creates the file and all read it.
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
	// Stat of the open file, not of the path, which could change in between.
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("stat master key file: %w", err)
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

// secretsFolder is where containers mount secrets.
var secretsFolder = "/run/secrets"

// isPrivateFolder reports whether the file is in a folder that systemd or a container
// created for this service only, where file modes do not matter.
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

// create writes a new key to a temporary file and links it to path when it is complete and
// on disk: path never has a partial key, and an existing key is never replaced
// (fs.ErrExist).
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

// syncFolder makes the new file name survive a power failure: a lost key would make every
// sealed secret unreadable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
