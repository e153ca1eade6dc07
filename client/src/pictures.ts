import { thumbHashToDataURL } from 'thumbhash';

/** A smaller picture of an image. */
export interface PictureVariant {
  width: number;
  url: string;
}

/** An image: the answer of `uploadImage`, an entry of `upload.list`, or an avatar with its `avatarVariants`. */
export interface SizedPicture {
  url: string;
  /** Without it only the variants are in the set. */
  width?: number | undefined;
  variants?: readonly PictureVariant[] | undefined;
}

/**
 * The value of `srcset` for an image: `…_320.webp 320w, ….webp 1600w`. Needs `sizes` beside it. Empty for a file that
 * the service has not converted.
 */
export function srcSet({ url, width, variants = [] }: SizedPicture): string {
  const pictures = width === undefined ? variants : [...variants, { url, width }];
  return pictures.map((picture) => `${picture.url} ${picture.width}w`).join(', ');
}

/** A blurred picture to show until the image is loaded: a data URL of the `placeholder` of an image. */
export function placeholderUrl(placeholder: string): string {
  return thumbHashToDataURL(Uint8Array.from(atob(placeholder), (character) => character.charCodeAt(0)));
}
