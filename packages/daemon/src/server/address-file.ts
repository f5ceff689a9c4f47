import { publishText } from '../storage/published-file.js';
import { addressFile } from '../storage/data-files.js';

/** Publishes the daemon's URL for `ctl`. Returns a function that removes it. */
export function publishAddress(dataDir: string, url: string): () => void {
  return publishText(addressFile(dataDir), `${reachable(url)}\n`);
}

/** Replaces a wildcard address, which cannot be dialed, by loopback. */
function reachable(url: string): string {
  return url.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:');
}
