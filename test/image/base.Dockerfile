# For base.sh: the Debian packages that the makers of the base name (gcr.io/distroless/cc-debian13), and the same users and folders.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS packages
RUN echo 'deb http://deb.debian.org/debian trixie main' >/etc/apt/sources.list && apt-get update
WORKDIR /packages
RUN apt-get download base-files netbase media-types tzdata libc6 libssl3t64 libzstd1 zlib1g \
      libgomp1 libstdc++6 libgcc-s1 gcc-14-base ca-certificates
# No package is installed, because that would need a shell. The authorities are one file, as an installation would make it.
RUN mkdir /root-folder && cd /root-folder && mkdir -p etc/ssl/certs home/nonroot tmp usr/bin usr/sbin usr/lib usr/lib64 \
 && for link in bin sbin lib lib64; do ln -s "usr/$link" "$link"; done \
 && for package in /packages/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink; done \
 && find usr/share/ca-certificates -name '*.crt' -print0 | sort -z | xargs -0 cat >etc/ssl/certs/ca-certificates.crt \
 && rm -rf usr/share/ca-certificates usr/share/man usr/share/locale usr/sbin/update-ca-certificates \
 && find usr/share/doc -type f ! -name copyright -delete \
 && echo 'root:x:0:0:root:/root:/sbin/nologin' >etc/passwd && echo 'root:x:0:' >etc/group \
 && echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >>etc/passwd && echo 'nonroot:x:65532:' >>etc/group \
 && chown 65532:65532 home/nonroot && chmod 1777 tmp

FROM scratch
COPY --from=packages /root-folder/ /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
USER 65532
WORKDIR /home/nonroot
