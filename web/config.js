// Whether the page has a server. `make web` writes another one of this file.
export const hasServer = true;
