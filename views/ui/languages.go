package ui

// Languages are the names of languages, each in its own.
const (
	NameZH = "中文"
	NameEN = "English"
)
