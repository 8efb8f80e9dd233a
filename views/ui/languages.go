package ui

// Languages are named in themselves.
const (
	NameZH = "中文"
	NameEN = "English"
)
