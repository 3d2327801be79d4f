"""Short common words for generated tasks. Packs share them so that a small model meets each word often."""

WORDS = (
    *("rent", "food", "fuel", "tax", "loan", "sale", "cash", "wage", "cost", "fees"),
    *("port", "host", "user", "mode", "size", "rate", "time", "path", "zone", "lock"),
)
FILE_NAMES = ("app", "db", "web", "api", "job", "log", "net", "ops")
PEOPLE = ("Ann", "Bob", "Eve", "Max", "Sam", "Tom", "Zoe", "Leo")
