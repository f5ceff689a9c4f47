import { publishText } from '../storage/published-file.js';
import { addressFile } from '../storage/data-files.js';

/** Tells the command line where the daemon listens. Returns what takes it back. */
export function publishAddress(dataDir: string, url: string): () => void {
  return publishText(addressFile(dataDir), `${reachable(url)}\n`);
}

/** An address that stands for every interface cannot be dialled; loopback is one of them. */
function reachable(url: string): string {
  return url.replace('://0.0.0.0:', '://127.0.0.1:').replace('://[::]:', '://[::1]:');
}
