import { Branches, type BranchesParts } from './branches.js';

export type { Branches } from './branches.js';

/** Opens the statuses of the branches and looks after them from now on. */
export async function openBranches(parts: BranchesParts): Promise<Branches> {
  const branches = await Branches.open(parts);
  branches.start();
  return branches;
}
