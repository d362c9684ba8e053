"""The sources of the operator's file. Their modules are loaded only if the settings name a file."""

from app.config.settings import Settings
from app.config.sources import AnySource, FolderSource, read_sources
from storage.sources.source import NamedSource, Source, SourceReads


def named_sources(settings: Settings) -> dict[str, NamedSource]:
    """The sources by name. Raises: SystemExit if the file is not valid."""
    if settings.sources is None:
        return {}
    try:
        sources = read_sources(settings.sources)
    except (OSError, ValueError) as error:
        raise SystemExit(f"PURSE_SOURCES: {error}") from None
    return {
        name: NamedSource(name, source.kind, frozenset(source.owners), SourceReads(_opened(source)))
        for name, source in sources.items()
    }


def _opened(source: AnySource) -> Source:
    if isinstance(source, FolderSource):
        from storage.sources.parquet_folder import ParquetFolder

        return ParquetFolder(source.folder)
    from storage.sources.postgresql import PostgreSQL

    return PostgreSQL(source.dsn.get_secret_value(), source.statement_timeout)
