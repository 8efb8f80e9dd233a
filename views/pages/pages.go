// Package pages draws the console's pages: values in, HTML out. It asks nothing of the
// database and decides nothing; the handlers answer what may be seen. Each page
// declares its texts beside it; package text has those that several pages say.
package pages
