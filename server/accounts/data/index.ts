export { type AccountExport, createAccountExport } from './export.ts';
export { type ColumnKind, storedData } from './stored-data.ts';
export { type ExportedUser, exportedUsers } from './users-export.ts';
export {
  createUserImport,
  type ImportedIdentity,
  type ImportedUser,
  type ImportOutcome,
  type UserImport,
} from './users-import.ts';
