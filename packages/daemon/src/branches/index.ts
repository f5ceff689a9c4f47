import { Branches, type BranchesParts } from './branches.js';

export type { Branches } from './branches.js';

/** Opens the branch statuses and starts to update them. */
export async function openBranches(parts: BranchesParts): Promise<Branches> {
  const branches = await Branches.open(parts);
  branches.start();
  return branches;
}
