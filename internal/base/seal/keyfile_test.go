package seal

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func keyFile(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAKeyFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	first, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	second, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	place := Place{"merchants", "1", "secret"}
	if got, err := second.Open(place, first.Seal(place, []byte("secret"))); err != nil || string(got) != "secret" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
}

func TestProcessesThatStartAtOnceShareOneKey(t *testing.T) {
	t.Parallel()
	const starters = 16
	for range 20 {
		path := filepath.Join(t.TempDir(), "master.key")
		rings, errs := make([]*Keyring, starters), make([]error, starters)
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range starters {
			done.Go(func() {
				start.Wait()
				rings[i], errs[i] = LoadOrCreate(path)
			})
		}
		start.Done()
		done.Wait()
		for i := range starters {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if rings[i].current != rings[0].current {
				t.Fatal("two processes seal under two keys")
			}
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 {
			t.Fatalf("left in the folder: %v, %v; want the key alone", entries, err)
		}
	}
}

func TestAKeyThatOthersCanChangeOrEverybodyCanReadIsRefused(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("0f", keySize)
	for _, mode := range []fs.FileMode{0o604, 0o644, 0o444, 0o620, 0o602, 0o660} {
		path := keyFile(t, key, mode)
		if _, err := LoadOrCreate(path); err == nil || !strings.Contains(err.Error(), "run chmod 600 "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o640, 0o440} {
		if _, err := LoadOrCreate(keyFile(t, key, mode)); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestAKeyThatAServiceManagerGivesIsTaken(t *testing.T) {
	key := strings.Repeat("0f", keySize)
	defer func(old string) { secretsFolder = old }(secretsFolder)
	secretsFolder = t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", t.TempDir())
	for _, folder := range []string{secretsFolder, os.Getenv("CREDENTIALS_DIRECTORY")} {
		for mode, taken := range map[fs.FileMode]bool{0o444: true, 0o440: true, 0o400: true, 0o644: true, 0o666: false, 0o664: false} {
			path := filepath.Join(folder, mode.String())
			if err := errors.Join(os.WriteFile(path, []byte(key), 0o600), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); (err == nil) != taken {
				t.Errorf("mode %o: %v", mode, err)
			}
		}
	}
	outside := keyFile(t, key, 0o444)
	within := filepath.Join(secretsFolder, "link")
	if err := os.Symlink(outside, within); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside, within, secretsFolder + "/../" + filepath.Base(filepath.Dir(outside)) + "/master.key"} {
		if _, err := Load(path); err == nil {
			t.Errorf("%s was accepted although it is elsewhere", path)
		}
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, err := Load(outside); err == nil {
		t.Error("an empty folder name matches every folder")
	}
}

// TestABrokenKeyFileIsNeverReplaced: a new key in its place would hide the loss of the old one.
func TestABrokenKeyFileIsNeverReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n", "short", strings.Repeat("0f", keySize-1), strings.Repeat("0f", keySize+1),
		strings.Repeat("z", 2*keySize), strings.Repeat("0f", keySize) + "\nshort", strings.Repeat("x", maxFile+1),
	} {
		path := keyFile(t, text, 0o600)
		_, err := LoadOrCreate(path)
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "0f0f") ||
			strings.Contains(err.Error(), "zz") {
			t.Errorf("%.20q: %v; want an error with the path and without the text", text, err)
		}
		if after, readErr := os.ReadFile(path); readErr != nil || string(after) != text {
			t.Errorf("%.20q: the file was changed", text)
		}
	}
}

func TestAFolderIsNoKeyFile(t *testing.T) {
	t.Parallel()
	if _, err := LoadOrCreate(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func TestLoadMakesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the file was made")
	}
}

func TestKeysAreReadInEveryUsualForm(t *testing.T) {
	t.Parallel()
	key := make([]byte, keySize)
	for i := range key {
		key[i] = byte(0xf8 + i) // gives + and / in base64
	}
	want := keyID(key)
	for _, text := range []string{
		hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)),
		base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key),
		"  " + hex.EncodeToString(key) + "\r\n\r\n",
	} {
		if k, err := ParseKeys(text); err != nil || k.current != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	older := strings.Repeat("0f", keySize)
	for _, text := range []string{hex.EncodeToString(key) + "\n" + older + "\n", hex.EncodeToString(key) + "," + older} {
		if k, err := ParseKeys(text); err != nil || k.current != want || len(k.keys) != 2 {
			t.Errorf("%q: %v; want the first key as the current one and the second besides it", text, err)
		}
	}
	if _, err := ParseKeys(strings.Repeat(older+"\n", maxKeys+1)); err == nil {
		t.Errorf("%d keys are accepted", maxKeys+1)
	}
}
