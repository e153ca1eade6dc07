import { placeholderUrl, type SizedPicture, srcSet } from 'account-client';
import { useState } from 'react';

interface Props {
  picture: SizedPicture & { height?: number | undefined; placeholder?: string | undefined };
  alt: string;
  /** The width on the page, as in CSS: the browser loads the smallest picture that fills it. */
  sizes: string;
}

/** A picture that fades in over its placeholder. The space is reserved before anything is loaded. */
export function Picture({ picture, alt, sizes }: Props) {
  const [isLoaded, setLoaded] = useState(false);
  const { url, width, height, placeholder } = picture;
  const background = placeholder && `center / cover url(${placeholderUrl(placeholder)})`;

  return (
    <span style={{ display: 'inline-block', width: sizes, lineHeight: 0, ...(background && { background }) }}>
      <img
        src={url}
        srcSet={srcSet(picture)}
        sizes={sizes}
        width={width}
        height={height}
        alt={alt}
        loading="lazy"
        onLoad={() => setLoaded(true)}
        style={{ width: '100%', height: 'auto', opacity: isLoaded ? 1 : 0, transition: 'opacity 0.4s' }}
      />
    </span>
  );
}
