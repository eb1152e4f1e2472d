/* Which C files this library was made of; `sources.py` has the name from the files themselves. */

#ifndef SOURCES
#define SOURCES ""
#endif

const char *sources(void) { return SOURCES; }
