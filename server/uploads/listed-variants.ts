import { type Variant, variantKey } from '../../entities/index.ts';
import type { ObjectStorage } from '../parts/object-storage/contract.ts';

export type ListedVariant = Variant & { url: string };

export const listVariants = (
  { publicUrl }: Pick<ObjectStorage, 'publicUrl'>,
  objectKey: string,
  variants: readonly Variant[],
): ListedVariant[] => variants.map((variant) => ({ ...variant, url: publicUrl(variantKey(objectKey, variant)) }));
