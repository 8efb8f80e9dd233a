DROP INDEX exceptions_assignee;
DROP INDEX exceptions_merchant;
DROP INDEX exceptions_open_merchant;
DROP INDEX exceptions_open_kind;
DROP INDEX exceptions_open;
DROP INDEX exceptions_of_kind;
