// Backstop receives payment suppliers' callbacks, notifies merchants, and brings stuck
// payments and notifications to an end.
package main

import (
	"os"

	"backstop/internal/cli"
)

// Set by the release build; commit only if the compiler sees no repository, as in the image.
var (
	version = "dev"
	commit  string
)

func main() { os.Exit(cli.Main(version, commit)) }
