// Backstop receives payment suppliers' callbacks, notifies merchants, and brings stuck
// payments and notifications to an end.
package main

import (
	"os"

	"backstop/internal/cli"
)

// Set by the release build; commit and its date only if the compiler sees no repository, as in the image.
var (
	version      = "dev"
	commit, date string
)

func main() { os.Exit(cli.Main(cli.Build{Version: version, Commit: commit, Date: date})) }
