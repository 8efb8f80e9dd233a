// Package static embeds the console's files in the binary. Each is served under a name that
// contains the hash of its content, so that browsers may cache it forever.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.css *.js *.svg fonts/*.woff2 vendor/*.js
var files embed.FS

// Prefix is the prefix of every file's path.
const Prefix = "/static/"

// File is one file as served.
type File struct {
	Body []byte
	Gzip []byte // empty if compression does not pay
	Type string // Content-Type
}

// types are the supported kinds of files; any other kind is an error.
var types = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

// Set holds all files by the path under which they are served. Paths that are not in it do not
// exist, however they are composed.
type Set struct {
	byPath map[string]File
	urls   map[string]string
}

// Load reads the embedded files. It panics if one cannot be served, which is a build error.
func Load() *Set {
	s := &Set{byPath: map[string]File{}, urls: map[string]string{}}
	var sheets []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case path.Ext(name) == ".css":
			sheets = append(sheets, name) // last, because they refer to the others
			return nil
		}
		return s.add(name, nil)
	})
	for _, name := range sheets {
		if err == nil {
			err = s.add(name, s.linked)
		}
	}
	if err != nil {
		panic("static: " + err.Error())
	}
	return s
}

func (s *Set) add(name string, change func([]byte) []byte) error {
	body, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	kind, ok := types[path.Ext(name)]
	if !ok {
		return fmt.Errorf("%s is of no known type", name)
	}
	if change != nil {
		body = change(body)
	}
	sum := sha256.Sum256(body)
	url := Prefix + strings.TrimSuffix(name, path.Ext(name)) + "." + hex.EncodeToString(sum[:6]) + path.Ext(name)
	s.urls[name] = url
	s.byPath[url] = File{Body: body, Gzip: packed(body), Type: kind}
	return nil
}

// linked replaces the names of files in a style sheet by the names under which they are served.
func (s *Set) linked(sheet []byte) []byte {
	for name, url := range s.urls {
		sheet = bytes.ReplaceAll(sheet, []byte("url("+name+")"), []byte("url("+url+")"))
	}
	return sheet
}

// packed returns the compressed file; nil if that saves less than a tenth.
func packed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one of the package's
	_, _ = w.Write(body)
	_ = w.Close()
	if b.Len() > len(body)*9/10 {
		return nil
	}
	return b.Bytes()
}

// Find returns the file served at a path.
func (s *Set) Find(path string) (File, bool) {
	f, ok := s.byPath[path]
	return f, ok
}

// URL returns the path under which a file is served, by its name in this folder. It panics if
// there is no such file, which the pages' tests would detect.
func (s *Set) URL(name string) string {
	url, ok := s.urls[name]
	if !ok {
		panic("static: there is no " + name)
	}
	return url
}
