/** Runs one attack in a process of its own, so that its work is not in the times of the calls. */
import { attacks } from './attacks.mjs';

const [, , name, server] = process.argv;
const seen = { refused: 0 };
process.once('message', () => process.send(seen));
attacks[name].run(JSON.parse(server), () => seen.refused++);
