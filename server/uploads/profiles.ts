import type { AllTables, ReadTables } from '../parts/database/contract.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';

type Objects = Pick<ObjectStorage, 'publicUrl'>;

/**
 * Matches the URL of an image and those of its variants. A pattern, because they may have a query; a wildcard in them
 * could only match too much. Empty, which matches no profile, for a private image: it has no URL.
 */
function addressPattern(objects: Objects, objectKey: string): string {
  const address = objects.publicUrl(objectKey.replace(/\.\w+$/, ''));
  return address && `${address}%`;
}

/** True if a profile shows the image; with the key of a variant: if one shows this variant. */
export const isShown = async (tables: ReadTables, objects: Objects, objectKey: string): Promise<boolean> =>
  (await tables
    .selectFrom('users')
    .select('id')
    .where('avatar', 'like', addressPattern(objects, objectKey))
    .limit(1)
    .executeTakeFirst()) !== undefined;

/** Sets the variants in every profile that shows the image. */
export async function setAvatarVariants(
  tables: Pick<AllTables, 'updateTable'>,
  objects: Objects,
  objectKey: string,
  variants: string | null,
): Promise<void> {
  await tables
    .updateTable('users')
    .set({ avatar_variants: variants })
    .where('avatar', 'like', addressPattern(objects, objectKey))
    .execute();
}
