/** What the crashing process and its judge must agree on. */
export const accounts = 8;
export const openingBalance = 1_000;
/** Enough records for the build of an index to take many commits. */
export const bulkRecords = 2_500;

const lasting = {
  docs: {
    indexes: [
      { fields: ['n'] },
      { fields: ['tags'] },
      { fields: ['email'], unique: true },
      { fields: ['who', 'n'] },
      { search: ['tags', 'email'] },
      { vector: 'place', dims: 2 },
    ],
  },
  accounts: { indexes: [{ fields: ['balance'] }] },
  journal: { indexes: [{ fields: ['tag'], unique: true }] },
  left: {},
  right: {},
  sessions: { indexes: [{ fields: ['user'] }] },
  badges: { indexes: [{ fields: ['badge'], unique: true }] },
  bulk: { indexes: [{ fields: ['n'], unique: true }] },
  batches: { indexes: [{ fields: ['batch'] }] },
};

/** Indexes that come and go from round to round, so that builds and removals are cut short too. */
const passing = [
  { fields: ['pad'] },
  { fields: ['tags', 'n'], sparse: true },
  { fields: ['email', 'who'], unique: true },
  { search: ['email'], language: 'en' },
];

const search = { search: ['tags'] };

/** The collections of a round. */
export function collectionsOf(withPassing) {
  if (!withPassing) return lasting;
  return {
    ...lasting,
    docs: { indexes: [...lasting.docs.indexes, ...passing] },
    bulk: {
      indexes: [...lasting.bulk.indexes, { fields: ['tags'] }, { fields: ['half', 'n'] }, search],
    },
  };
}
